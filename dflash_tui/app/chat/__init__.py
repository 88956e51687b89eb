"""The chat screen: its parts, where the user looks, and how it is the face of a desk."""

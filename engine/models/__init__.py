"""The model definitions: a folder for each family of targets and for each kind of drafter, and a registry."""

"""The model definitions: a folder for each family of targets, one for each kind of drafter, a registry."""

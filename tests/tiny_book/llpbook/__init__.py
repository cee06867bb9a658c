"""The package of a tiny book, on which the authoring tools are tested."""

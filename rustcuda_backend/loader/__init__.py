"""The generated loader: the code it carries (`runtime`) and what writes it (`generate`)."""

"""Every wire model, defined once. Imports no other package of this project."""

"""Every wire model, once. Imports none of our other packages."""

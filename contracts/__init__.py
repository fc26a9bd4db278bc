"""What an agreement means: dialects, their inner form, and what a change of it breaks. Pure."""

"""The page: what a person sees of the node, server-rendered and live (design-next N5)."""

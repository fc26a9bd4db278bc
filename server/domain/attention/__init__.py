"""What waits for whom, derived from facts (design-next N1). Pure: a module for each subject."""

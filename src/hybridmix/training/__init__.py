"""Training procedures: from rows and checked options to a `Fitted` record."""

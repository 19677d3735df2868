"""Lambda entry points: an event in, one call of an actor, a response out."""

"""A turn of an agent with memory around it: what is told before it, and how it is kept after it, whichever door it comes by."""

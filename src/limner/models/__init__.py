"""A question about pictures -> a model's answer: who is asked, and how each API is spoken to."""

"""Conversations: what enters them, what is kept of them, and what a model is sent of them."""

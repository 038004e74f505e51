"""The app-server protocol as types: what clients send, what they are sent, and what is gated."""

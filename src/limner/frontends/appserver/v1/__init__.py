"""The first version of the protocol, conversations and events, on the threads of the second."""

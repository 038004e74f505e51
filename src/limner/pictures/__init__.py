"""Stored pictures: taken in, converted, fitted and labelled; and the requests to providers."""

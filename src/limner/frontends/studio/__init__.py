"""The studio: a web page on this machine that shows what limner made, saw and spent."""

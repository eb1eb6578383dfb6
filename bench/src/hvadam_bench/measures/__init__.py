"""Measures of generated images: features, and how far two sets of them are apart."""

"""Upper bounds on what a whole search costs. Imports guarantees, laws and conversion, and what lies below them."""

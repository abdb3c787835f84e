"""Laws of views: how much one label changes what a party sees, one idea a file."""

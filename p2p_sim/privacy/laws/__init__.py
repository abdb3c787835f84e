"""Laws of views: how much one label changes what a party sees, one idea a file.

Of a shuffle: ``shuffled_bits`` of two labels, ``shuffled_categories`` of more, ``random_size_shuffle`` where it is not
known how many take part; ``mechanism_parts/shuffled_crowds.py`` chooses among them.
"""

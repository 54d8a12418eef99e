"""A door of its own for profiles: list and show them, find what is wrong in one, try which fits, record a new one."""

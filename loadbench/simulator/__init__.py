"""A service whose delays are known: it speaks any profile from the profile itself, and logs what it really got."""

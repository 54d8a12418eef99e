"""How corpora lie on disk: one module for each family of corpora, each with its LAYOUTS."""

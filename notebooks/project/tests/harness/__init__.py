"""What the tests are made of. In a package: a module of yours may be named `ranks`, too."""

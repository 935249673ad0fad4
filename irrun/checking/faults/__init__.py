"""The checks of one model: each module reports one kind of fault, from one record of evidence that all share."""

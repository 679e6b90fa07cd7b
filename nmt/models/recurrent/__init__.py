"""Recurrent encoder-decoders, with the attention of Bahdanau et al. (2015) or Luong et al. (2015), or without."""

"""Recipes: configurations that ``nmt train`` chooses by the dataset."""

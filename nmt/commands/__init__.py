"""Commands of the command line, a module each; what they import at the top starts in no time."""

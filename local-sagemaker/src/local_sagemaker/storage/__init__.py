"""Files that are whole or not there, and archives that stay in their folder."""

"""What runs beside a notebook: session, launch, checks, plots and the command `workshop`."""

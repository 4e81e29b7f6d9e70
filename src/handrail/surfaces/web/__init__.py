"""The page: what a person sees and decides, over HTTP. Functions of the read models; no rules live here."""

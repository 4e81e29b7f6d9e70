// Before the first paint: applies the chosen theme, so that nothing flashes. Without a choice the system decides.
{
  const chosen = localStorage.getItem("handrail-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}

// Light, dark, or the system's theme. A classic script, so that the first paint already has the right colours.
(() => {
  const KEY = 'tertulia.theme';
  const NEXT = { system: 'light', light: 'dark', dark: 'system' };
  const SIGN = { system: '◐', light: '○', dark: '●' };
  const read = () => {
    try {
      const stored = localStorage.getItem(KEY);
      return stored in NEXT ? stored : 'system';
    } catch {
      return 'system';
    }
  };
  let theme = read();
  const apply = () => {
    if (theme === 'system') document.documentElement.removeAttribute('data-theme');
    else document.documentElement.setAttribute('data-theme', theme);
    const button = document.getElementById('theme');
    if (!button) return;
    button.textContent = SIGN[theme];
    button.setAttribute('aria-label', button.dataset[theme]);
  };
  apply();
  document.addEventListener('DOMContentLoaded', () => {
    apply();
    document.getElementById('theme')?.addEventListener('click', () => {
      theme = NEXT[theme];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // Private windows may have no storage. Then the choice lasts as long as the page.
      }
      apply();
    });
  });
})();

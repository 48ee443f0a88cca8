// Light, dark, or as the system has it. A classic script, so that the first paint is already right.
(() => {
  const KEY = 'tertulia.theme';
  const NEXT = { system: 'light', light: 'dark', dark: 'system' };
  const SIGN = { system: '◐', light: '○', dark: '●' };
  const read = () => {
    try {
      const kept = localStorage.getItem(KEY);
      return kept in NEXT ? kept : 'system';
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
    button.setAttribute('aria-label', `Colours: ${theme === 'system' ? 'as the system' : theme}`);
  };
  apply();
  document.addEventListener('DOMContentLoaded', () => {
    apply();
    document.getElementById('theme')?.addEventListener('click', () => {
      theme = NEXT[theme];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // Private windows may keep nothing; the choice lasts as long as the page.
      }
      apply();
    });
  });
})();

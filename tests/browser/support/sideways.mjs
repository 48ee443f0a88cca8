// What makes a page or the dialog on top of it scroll sideways, or reaches beyond the screen.

export const sideways = page =>
  page.evaluate(() => {
    const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
    const named = node => `${node.tagName.toLowerCase()}${node.id ? `#${node.id}` : ''}${typeof node.className === 'string' && node.className ? `.${node.className}` : ''} “${node.textContent.trim().slice(0, 30)}”`;
    const found = document.documentElement.scrollWidth > innerWidth ? [`the page is ${document.documentElement.scrollWidth} px wide`] : [];
    for (const node of [top, ...top.querySelectorAll('*')].filter(one => one.checkVisibility({ visibilityProperty: true }))) {
      const { left, right, width } = node.getBoundingClientRect();
      // What is cut off on purpose, and code, which scrolls by itself.
      if (!width || node.closest('.visually-hidden, .skip, pre, svg, .top .here, .room-title, .last-decision-words')) continue;
      if (right > innerWidth + 1 || left < -1) found.push(`${named(node)} reaches from ${Math.round(left)} to ${Math.round(right)}`);
      if (node.scrollWidth - node.clientWidth > 1 && ['auto', 'scroll'].includes(getComputedStyle(node).overflowX) && !node.matches('input, textarea')) found.push(`${named(node)} scrolls by ${node.scrollWidth - node.clientWidth} px`);
    }
    return found;
  });

// Collects changes, and redraws the page once for each frame.

// `draw(parts)` gets the set of the parts that changed. Returns the function that notes changes.
export function redraws(draw) {
  const dirty = new Set();
  let isDue = false;
  return parts => {
    for (const part of parts) dirty.add(part);
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      const changed = new Set(dirty);
      dirty.clear();
      draw(changed);
    });
  };
}

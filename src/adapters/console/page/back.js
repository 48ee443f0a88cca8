// The browser's Back closes what is open before it leaves the room. While anything is open, one entry of the history stands for it.

const open = [];
let isLeaving = false; // whether this entry is being left because nothing is open any more

const isGuarded = () => history.state?.isOpen === true;
const guard = () => isGuarded() || history.pushState({ isOpen: true }, '');

function settle() {
  if (open.length || isLeaving || !isGuarded()) return;
  isLeaving = true;
  history.back();
}

// Call this when something opens that `close()` closes. Returns a function to call once it is closed.
export function opened(close) {
  open.push(close);
  if (!isLeaving) guard();
  return () => {
    const at = open.indexOf(close);
    if (at >= 0) open.splice(at, 1);
    // What is opened or shown instead may take its entry.
    setTimeout(settle);
  };
}

// Goes to another place of this page.
export const goTo = address => history[isGuarded() ? 'replaceState' : 'pushState'](null, '', address);

addEventListener('popstate', () => {
  if (isLeaving) isLeaving = false;
  else if (!isGuarded()) open.at(-1)?.();
  if (open.length) guard();
});

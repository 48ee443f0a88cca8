// A dialog whose typed words would be lost asks before it closes. Loaded with the first such dialog.

import { confirmed } from './dialogs.js';
import { t } from './texts.js';

// Resolves to whether what was typed may be lost, or is saved.
export const maybeLost = async isChanged => !isChanged || confirmed(t('maker.leave_title'), t('maker.leave'), t('maker.discard'), t('maker.keep_writing'));

// `isChanged()` tells whether something typed is not saved. Returns what closes the dialog as its own button does.
export function asksBeforeLoss(box, isChanged) {
  box.mayClose = () => maybeLost(isChanged());
  return async () => (await box.mayClose()) && box.close();
}

// Additional headers, query parameters and body fields of requests to a model, as texts of the form: lines of `name: value`, and JSON.

// A secret is never shown: its line ends after the name.
export const linesOf = (values = {}) => Object.entries(values).map(([name, value]) => (value === null ? `${name}:` : `${name}: ${value}`)).join('\n');

// A name without a value keeps the value in use, if the server has one.
export function valuesOf(lines) {
  const split = line => line.match(/^([^:=]*)[:=]?(.*)$/su).slice(1).map(part => part.trim());
  const rows = lines.split('\n').map(line => line.trim()).filter(line => line !== '').map(split);
  return Object.fromEntries(rows.map(([name, value]) => [name, value === '' ? null : value]));
}

export const jsonOf = (fields = {}) => (Object.keys(fields).length ? JSON.stringify(fields, null, 2) : '');

// Null: it is not a JSON object.
export function fieldsOf(json) {
  if (json.trim() === '') return {};
  try {
    const fields = JSON.parse(json);
    return typeof fields === 'object' && fields !== null && !Array.isArray(fields) ? fields : null;
  } catch {
    return null;
  }
}

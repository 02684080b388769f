// Tokens in a row, coloured by the weights that a head gives to them from one query: see page/token_strip.h.

const tokens = (place, {tokens, layers, heads, top, keys, weights, layer, head, query}, numbers) => {
  const quoted = (at) => `${at} “${visible(tokens[at])}”`;
  const look = (to) => {
    buttons[query].tabIndex = -1;
    query = to;
    buttons[query].tabIndex = 0;
    const found = new Map();
    const from = ((layer * heads + head) * tokens.length + query) * top;
    for (let i = from; i < from + top; ++i) {
      if (numbers[keys + i] >= 0) found.set(numbers[keys + i], numbers[weights + i]);
    }
    buttons.forEach((button, at) => {
      button.ariaPressed = at === query;
      button.style.background = `color-mix(in srgb, var(--accent) ${60 * Math.sqrt(found.get(at) || 0)}%, transparent)`;
    });
    line.textContent = `Layer ${layers[layer]}, head ${head}: query ${quoted(query)} puts ` +
      [...found].map(([key, weight]) => `${short(weight)} on ${quoted(key)}`).join(', ') + '.';
  };
  const buttons = tokens.map((text, at) => make('button',
    {type: 'button', class: 'token', tabindex: -1, pointerenter: () => look(at), focus: () => look(at)},
    visible(text)));
  const line = status();
  place.append(
    box('choosers',
      chooser('Layer', layers, (to) => look(query, layer = to), layer).node,
      chooser('Head', [...Array(heads).keys()], (to) => look(query, head = to), head).node),
    make('div', {class: 'tokens', role: 'group', 'aria-label': 'Tokens; arrow keys move the query',
      keydown: (event) => {
        const to = {ArrowLeft: query - 1, ArrowRight: query + 1, Home: 0, End: tokens.length - 1}[event.key];
        if (!buttons[to]) return;
        buttons[to].focus();
        event.preventDefault();
      }}, ...buttons), line);
  look(query);
};

// What interventions or patches changed, one map at a time: see reports/effect_explorer.h.

const effects = (place, {maps, colours}, numbers) => {
  const body = make('div', {});
  const choose = (to) => {
    const {from, cells, crossed, title, ...map} = maps[to];
    const values = numbers.subarray(from, from + cells.length);
    const {node, line} = heatMap({
      hint: 'Point at a cell, or use the arrow keys.',
      label: () => title + '; rows from below',
      grid: () => ({...map, values, shades: ramp(colours), off: (at) => !known(values[at]),
        crossed: (at) => crossed.includes(at)}),
      say: (at) => cells[at],
      point: () => {},
    });
    body.replaceChildren(node, line);
    redraw();
  };
  place.append(box('choosers', chooser('Map', maps.map(({title}) => title), choose).node), body);
  choose(0);
};

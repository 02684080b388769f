for (const printed of find('.table > table')) sortable(printed);

/** The words and numbers of a part: see reports/page/embedded_data.h. */
const unpacked = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  const buffer = await new Response(stream).arrayBuffer();
  const size = new DataView(buffer).getUint32(0, true);
  const words = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const planes = new Uint8Array(buffer, 4 + size);
  const [raw, count] = [new Uint8Array(planes.length), planes.length / 4];
  for (let i = 0; i < raw.length; ++i) raw[i] = planes[i % 4 * count + (i >> 2)];
  return [words, new Float32Array(raw.buffer)];
};

const parts = {explore, effects, tokens};
for (const place of find('[data-part]')) {
  unpacked(place.textContent).then(([words, numbers]) => {
    place.hidden = false;
    for (const node of find('.scripted')) {
      if (node.contains(place) || node.hash === '#' + place.parentNode.id) node.hidden = false;
    }
    parts[place.dataset.part](place, words, numbers);
  });
}

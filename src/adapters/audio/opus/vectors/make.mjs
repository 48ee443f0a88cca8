// Makes the vectors beside it with real libopus: the one in Chromium (WebCodecs) and libopus 1.4 compiled to WebAssembly (opusscript).
// In an empty folder: npm install opusscript@0.1.1 playwright-core; then: node make.mjs speech.wav (mono, 16 bit, 48 kHz) OUT
//
// A vector is a sequence of: length (u16), packet, number of samples (u16, 0 or 320), samples (i16). All numbers are little-endian. The samples are
// what libopus 1.4 decodes of the packet at 16 kHz mono, after all packets before it. Most packets have none, to keep the files small.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { chromium } from "playwright-core";
const OpusScript = createRequire(import.meta.url)("opusscript");
const [file, out] = process.argv.slice(2);
const wav = readFileSync(file);
if (wav.readUInt32LE(24) !== 48_000 || wav.readUInt16LE(22) !== 1) throw new Error("the speech must be mono at 48 kHz");
const speech = new Int16Array(new Uint8Array(wav.subarray(44)).buffer);
const FRAME = 960;

/** The packets of the console page: AudioEncoder as the page configures it. */
async function browser(samples) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage();
  await page.route("http://localhost/", (route) => route.fulfill({ contentType: "text/html", body: "" }));
  await page.goto("http://localhost/");
  const packets = await page.evaluate(async (samples) => {
    const packets = [];
    const output = (chunk) => {
      const bytes = new Uint8Array(chunk.byteLength);
      chunk.copyTo(bytes);
      packets.push([...bytes]);
    };
    const encoder = new AudioEncoder({ output, error: (error) => { throw error; } });
    const opus = { frameDuration: 20_000, application: "voip" };
    encoder.configure({ codec: "opus", sampleRate: 48_000, numberOfChannels: 1, bitrate: 32_000, opus });
    for (let at = 0; at + 960 <= samples.length; at += 960) {
      const data = Float32Array.from(samples.slice(at, at + 960), (sample) => sample / 32_768);
      const timestamp = (at / 48_000) * 1e6;
      encoder.encode(new AudioData({ format: "f32-planar", sampleRate: 48_000, numberOfFrames: 960, numberOfChannels: 1, timestamp, data }));
    }
    await encoder.flush();
    return packets;
  }, [...samples]);
  await browser.close();
  return packets.map((packet) => Buffer.from(packet));
}

/** The packets of libopus 1.4 with these settings (numbers of opus_encoder_ctl). */
function wasm(samples, channels, application, settings) {
  const encoder = new OpusScript(48_000, channels, application);
  for (const [request, value] of settings) encoder.encoderCTL(request, value);
  const packets = [];
  for (let at = 0; at + FRAME <= samples.length; at += FRAME) {
    const frame = Buffer.alloc(FRAME * channels * 2);
    for (let i = 0; i < FRAME; i += 1)
      for (let c = 0; c < channels; c += 1) frame.writeInt16LE(Math.round(samples[at + i] * (c ? 0.6 : 1)), (i * channels + c) * 2);
    packets.push(Buffer.from(encoder.encode(frame, FRAME)));
  }
  return packets;
}

function write(name, packets, every) {
  const decoder = new OpusScript(16_000, 1, OpusScript.Application.AUDIO);
  const parts = packets.flatMap((packet, number) => {
    const pcm = Buffer.from(decoder.decode(packet));
    if (pcm.length !== 640) throw new Error(`a frame of ${pcm.length} bytes`);
    const samples = number % every === every - 1 ? pcm : Buffer.alloc(0);
    const head = (value) => { const bytes = Buffer.alloc(2); bytes.writeUInt16LE(value); return bytes; };
    return [head(packet.length), packet, head(samples.length / 2), samples];
  });
  const all = Buffer.concat(parts);
  const heads = [...new Set(packets.map((packet) => packet[0] >> 3))];
  console.log(name, packets.length, "packets", all.length, "bytes; configurations", heads.join(" "));
  writeFileSync(`${out}/${name}.vector`, all);
}

const { VOIP, AUDIO } = OpusScript.Application;
const BITRATE = 4002, FEC = 4012, LOSS = 4014, BANDWIDTH = 4008, SUPERWIDEBAND = 1104;
write("browser", await browser(speech), 8);
write("stereo", wasm(speech.subarray(0, 48_000), 2, AUDIO, [[BITRATE, 64_000]]), 8);
write("fec", wasm(speech.subarray(0, 48_000), 1, VOIP, [[BITRATE, 18_000], [FEC, 1], [LOSS, 20]]), 8);
write("hybrid", wasm(speech.subarray(0, 48_000), 1, VOIP, [[BITRATE, 28_000], [BANDWIDTH, SUPERWIDEBAND]]), 8);

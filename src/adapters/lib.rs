//! Code shared by adapters: the machine's clock and randomness, slots for clients, programs, and WebSockets to servers.

pub mod program;
pub mod slots;
pub mod system;
pub mod web_socket;

use tertulia_domain as domain;
use tertulia_http_client as http_client;
use tertulia_ports as ports;

//! The Discord adapter: pure decisions over plain types, and the connections and requests that carry them out.
//!
#![doc = include_str!("README.md")]

pub mod backfill;
pub mod cache;
pub mod calls;
pub mod check;
pub mod clock;
pub mod commands;
pub mod delivery_errors;
pub mod dispatch;
mod files;
#[cfg(any(test, feature = "samples"))]
pub mod fuzz;
pub mod gateway;
pub mod identify;
pub mod incoming;
pub mod intake;
pub mod limits;
pub mod markup;
pub mod names;
pub mod outgoing;
pub mod permissions;
pub mod platform;
mod proxies;
pub mod reconcile;
pub mod refusals;
pub mod rest;
pub mod roles;
pub mod snowflake;
pub mod voice;
pub mod webhooks;
pub mod wire;

use tertulia_adapters as adapters;
use tertulia_domain as domain;
use tertulia_http_client as http_client;
#[cfg(any(test, feature = "samples"))]
use tertulia_inputs as fuzzing;
use tertulia_ports as ports;
use tertulia_settings as settings;
use tertulia_telemetry as telemetry;
use tertulia_texts as texts;

//! Binding the port and letting go of it.

use super::*;

#[tokio::test]
async fn a_port_in_use_is_named_with_the_ways_out() {
    let world = World::new().await;
    let settings = Server { listen: world.address.to_string(), ..settings() };

    let refusal = Console::bind(&settings, Arc::new(FakeBackend::default()), rng(), Metrics::local()).await.err().unwrap();

    let told = format!("{} is in use by another program; set server.listen to another port, or stop the other", world.address);
    assert_eq!(refusal.to_string(), told);
}

#[tokio::test]
async fn a_setting_out_of_range_stops_the_start() {
    let settings = Server { max_sessions: 0, ..settings() };

    let refusal = Console::bind(&settings, Arc::new(FakeBackend::default()), rng(), Metrics::local()).await.err().unwrap();

    assert_eq!(refusal.to_string(), "server.max_sessions: is 0, must be from 1 to 10000");
}

#[tokio::test]
async fn what_is_in_flight_at_shutdown_is_answered() {
    let mut world = World::new().await;
    world.backend.add("slow");
    let asked = tokio::spawn(world.request(Method::GET, "/api/rooms/slow/state").send());
    world.backend.entered.notified().await;

    world.stop.take().unwrap().send(()).unwrap();
    world.backend.proceed.notify_one();

    assert_eq!(asked.await.unwrap().unwrap().status(), 200);
    world.served.await.unwrap();
}

#[tokio::test]
async fn who_does_not_end_is_cut_off_after_the_drain() {
    let mut world = World::with(Server { drain_secs: 0.05, ..settings() }).await;
    world.backend.add("slow");
    let asked = tokio::spawn(world.request(Method::GET, "/api/rooms/slow/state").send());
    world.backend.entered.notified().await;

    world.stop.take().unwrap().send(()).unwrap();
    world.served.await.unwrap();

    assert!(asked.await.unwrap().is_err());
    assert!(TcpStream::connect(world.address).await.is_err());
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_shutdown() {
    let mut world = World::new().await;
    world.get("/healthz").await;
    let mut idle = world.connect().await;

    world.stop.take().unwrap().send(()).unwrap();
    world.served.await.unwrap();

    assert_eq!(read_all(&mut idle).await, "");
}

use proptest::prelude::*;
use twilight_model::id::Id;

use super::super::snowflake::id;
use super::*;

const GUILD: Snowflake = id(1);
const OWNER: Snowflake = id(2);
const BOT: Snowflake = id(3);
const ROLE: Snowflake = id(10);
const OTHER_ROLE: Snowflake = id(11);
const NOW: Moment = Moment::from_micros(1_000);
const TEXT: Channel<'_> = Channel { overwrites: &[], is_voice: false, thread: None };

const VIEW: Permissions = Permissions::VIEW_CHANNEL;
const SEND: Permissions = Permissions::SEND_MESSAGES;
const THREADS: Permissions = Permissions::SEND_MESSAGES_IN_THREADS;
const HISTORY: Permissions = Permissions::READ_MESSAGE_HISTORY;
const WEBHOOKS: Permissions = Permissions::MANAGE_WEBHOOKS;
const NONE: Permissions = Permissions::empty();

#[test]
fn an_invitation_requests_the_needed_permissions() {
    assert_eq!(invitation().bits(), 275_414_846_464);
    assert_eq!(missing(invitation(), &TEXT), []);
    assert_eq!(missing(invitation(), &thread(Thread::default())), []);
}

#[test]
fn roles_add_up_in_a_guild() {
    let with = |everybody, role, other, roles: &[Snowflake]| {
        let all = BTreeMap::from([(GUILD, everybody), (ROLE, role), (OTHER_ROLE, other)]);
        in_guild(&guild(&all), &Member { roles, ..bot() })
    };

    assert_eq!(with(VIEW, SEND, HISTORY, &[ROLE]), VIEW | SEND);
    assert_eq!(with(VIEW, SEND, HISTORY, &[ROLE, OTHER_ROLE]), VIEW | SEND | HISTORY);
    assert_eq!(with(VIEW, SEND, HISTORY, &[id(99)]), VIEW);
    assert_eq!(with(VIEW, Permissions::ADMINISTRATOR, NONE, &[ROLE]), Permissions::all());
}

#[test]
fn overwrites_apply_in_order() {
    let member = |allow, deny| on_member(BOT, allow, deny);
    for (name, overwrites, sends) in [
        ("none", vec![], true),
        ("everybody may not", vec![on_role(GUILD, NONE, SEND)], false),
        ("a role may", vec![on_role(GUILD, NONE, SEND), on_role(ROLE, SEND, NONE)], true),
        ("in any order", vec![on_role(ROLE, SEND, NONE), on_role(GUILD, NONE, SEND)], true),
        ("one role may, one may not", vec![on_role(OTHER_ROLE, NONE, SEND), on_role(ROLE, SEND, NONE)], true),
        ("one role may not, one may", vec![on_role(ROLE, SEND, NONE), on_role(OTHER_ROLE, NONE, SEND)], true),
        ("the member may not", vec![on_role(ROLE, SEND, NONE), member(NONE, SEND)], false),
        ("the member may", vec![on_role(ROLE, NONE, SEND), member(SEND, NONE)], true),
        ("both at once", vec![member(SEND, SEND)], true),
        ("a role that it does not have", vec![on_role(id(99), NONE, SEND)], true),
        ("another member", vec![on_member(OWNER, NONE, SEND)], true),
        ("a member with the guild's id", vec![on_member(GUILD, NONE, SEND)], true),
    ] {
        let may = may(VIEW | SEND, &Channel { overwrites: &overwrites, ..TEXT });

        assert_eq!(may.contains(SEND), sends, "{name}");
    }
}

#[test]
fn owners_and_administrators_have_all_permissions_even_during_a_timeout() {
    let roles = BTreeMap::from([(GUILD, NONE), (ROLE, Permissions::ADMINISTRATOR)]);
    let denied = [on_role(GUILD, NONE, Permissions::all())];
    let channel = Channel { overwrites: &denied, ..thread(Thread { is_private: true, is_locked: true, is_member: false }) };
    let silenced = Member { timed_out_until: Some(Moment::from_micros(2_000)), ..bot() };

    assert_eq!(in_channel(&guild(&roles), &silenced, &channel, NOW), Permissions::all());
    assert_eq!(in_channel(&guild(&roles), &Member { id: OWNER, roles: &[], ..silenced }, &channel, NOW), Permissions::all());
}

#[test]
fn a_member_in_a_timeout_may_only_view() {
    let roles = BTreeMap::from([(GUILD, VIEW | SEND | HISTORY | WEBHOOKS)]);
    let until = |until| Member { timed_out_until: Some(Moment::from_micros(until)), ..bot() };

    assert_eq!(in_channel(&guild(&roles), &until(1_001), &TEXT, NOW), VIEW | HISTORY);
    assert_eq!(in_channel(&guild(&roles), &until(1_000), &TEXT, NOW), VIEW | SEND | HISTORY | WEBHOOKS);
}

#[test]
fn some_permissions_depend_on_others() {
    let files = Permissions::ATTACH_FILES | Permissions::MENTION_EVERYONE;

    assert_eq!(may(SEND | WEBHOOKS, &TEXT), NONE);
    assert_eq!(may(VIEW | files, &TEXT), VIEW);
    assert_eq!(may(VIEW | SEND | files, &TEXT), VIEW | SEND | files);
    assert_eq!(may(VIEW | SEND | files, &thread(Thread::default())), VIEW);
    assert_eq!(may(VIEW | THREADS | files, &thread(Thread::default())), VIEW | THREADS | files);
    assert_eq!(may(VIEW | SEND | WEBHOOKS, &Channel { is_voice: true, ..TEXT }), VIEW);
    assert_eq!(may(VIEW | Permissions::CONNECT, &Channel { is_voice: true, ..TEXT }), VIEW | Permissions::CONNECT);
}

#[test]
fn private_and_locked_threads_are_for_members_and_moderators() {
    let private = |is_member| thread(Thread { is_private: true, is_member, is_locked: false });
    let locked = thread(Thread { is_locked: true, ..Thread::default() });
    let moderator = Permissions::MANAGE_THREADS;

    assert_eq!(may(VIEW | THREADS, &private(false)), NONE);
    assert_eq!(may(VIEW | THREADS, &private(true)), VIEW | THREADS);
    assert_eq!(may(VIEW | THREADS | moderator, &private(false)), VIEW | THREADS | moderator);
    assert_eq!(may(VIEW | THREADS, &locked), VIEW);
    assert_eq!(may(VIEW | THREADS | moderator, &locked), VIEW | THREADS | moderator);
}

#[test]
fn missing_needs_are_listed_by_importance() {
    let locked = thread(Thread { is_locked: true, ..Thread::default() });
    let voice = Channel { is_voice: true, ..TEXT };
    for (permissions, channel, expected) in [
        (NONE, TEXT, &[Need::Listen][..]),
        (VIEW, voice, &[Need::Enter]),
        (VIEW, TEXT, &[Need::Webhooks, Need::ReadBack, Need::Send]),
        (VIEW | SEND | WEBHOOKS, TEXT, &[Need::ReadBack]),
        (VIEW | HISTORY | WEBHOOKS, thread(Thread::default()), &[Need::SendInThreads]),
        (VIEW | HISTORY | WEBHOOKS, locked, &[Need::Unlocked]),
        (VIEW | HISTORY | WEBHOOKS | Permissions::MANAGE_THREADS, locked, &[Need::SendInThreads]),
        (Permissions::all(), locked, &[]),
        (Permissions::ADMINISTRATOR, locked, &[]),
    ] {
        assert_eq!(missing(permissions, &channel), expected, "{permissions:?} {channel:?}");
    }
}

#[test]
fn a_call_needs_its_channel_to_be_seen_entered_and_spoken_in() {
    let (connect, speak) = (Permissions::CONNECT, Permissions::SPEAK);
    for (permissions, is_stage, expected) in [
        (NONE, false, Some(Need::Listen)),
        (connect | speak, false, Some(Need::Listen)),
        (VIEW | speak, false, Some(Need::Enter)),
        (VIEW | connect, false, Some(Need::Speak)),
        (VIEW | connect, true, None),
        (VIEW | connect | speak, false, None),
        (Permissions::ADMINISTRATOR, false, None),
    ] {
        assert_eq!(missing_in_call(permissions, is_stage), expected, "{permissions:?} {is_stage}");
    }
}

#[test]
fn every_need_says_what_to_click() {
    use Need::{Commands, Enter, Listen, ReadBack, Send, SendInThreads, Speak, Unlocked, Webhooks};
    for need in [Listen, Enter, Speak, ReadBack, Webhooks, Send, SendInThreads, Unlocked, Commands] {
        let (without, click) = need.explanation();

        assert!(without.ends_with('.') && click.ends_with('.'));
        assert!(click.contains('>') || need == Commands);
    }
}

proptest! {
    /// Follows the order of steps in Discord's documentation, one bit at a time.
    #[test]
    fn each_permission_follows_the_last_overwrite_that_sets_it(
        base in any::<bool>(),
        // Deny and allow for everyone, a role, another role, the member.
        tells in prop::array::uniform4((any::<bool>(), any::<bool>())),
        order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
    ) {
        let targets: [fn(Permissions, Permissions) -> PermissionOverwrite; 4] = [
            |allow, deny| on_role(GUILD, allow, deny),
            |allow, deny| on_role(ROLE, allow, deny),
            |allow, deny| on_role(OTHER_ROLE, allow, deny),
            |allow, deny| on_member(BOT, allow, deny),
        ];
        let given = |is_given| if is_given { WEBHOOKS } else { NONE };
        let overwrites: Vec<_> = order
            .into_iter()
            .map(|index| targets[index](given(tells[index].1), given(tells[index].0)))
            .collect();

        let mut expected = base;
        let roles = (tells[1].0 || tells[2].0, tells[1].1 || tells[2].1);
        for (denied, allowed) in [tells[0], roles, tells[3]] {
            expected = allowed || (expected && !denied);
        }

        let may = may(VIEW | given(base), &Channel { overwrites: &overwrites, ..TEXT });
        prop_assert_eq!(may.contains(WEBHOOKS), expected);
    }
}

/// The bot's permissions in the channel, if its role has these in the guild.
fn may(permissions: Permissions, channel: &Channel<'_>) -> Permissions {
    let roles = BTreeMap::from([(GUILD, NONE), (ROLE, permissions), (OTHER_ROLE, NONE)]);
    in_channel(&guild(&roles), &bot(), channel, NOW)
}

const fn guild(roles: &BTreeMap<Snowflake, Permissions>) -> Guild<'_> {
    Guild { id: GUILD, owner: OWNER, roles }
}

const fn bot() -> Member<'static> {
    Member { id: BOT, roles: &[ROLE, OTHER_ROLE], timed_out_until: None }
}

const fn thread(thread: Thread) -> Channel<'static> {
    Channel { thread: Some(thread), ..TEXT }
}

const fn on_role(role: Snowflake, allow: Permissions, deny: Permissions) -> PermissionOverwrite {
    PermissionOverwrite { allow, deny, id: Id::new(role.get()), kind: PermissionOverwriteType::Role }
}

const fn on_member(member: Snowflake, allow: Permissions, deny: Permissions) -> PermissionOverwrite {
    PermissionOverwrite { kind: PermissionOverwriteType::Member, ..on_role(member, allow, deny) }
}

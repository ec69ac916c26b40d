// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {MiniTest} from "./MiniTest.sol";
import {IEscrow, IUsdc, World} from "./World.sol";

/// @title Everybody does anything at any time
/// @dev Every call is made with sensible values, so that most go through; what a call must not do is noted in `broken`.
contract Handler is World {
    bytes32[] public ids;
    uint256 public donated;
    string public broken;
    mapping(bytes32 id => bool) private known;
    mapping(bytes32 id => uint256) public consented;
    mapping(bytes32 id => uint256) public seenEnd;
    mapping(bytes32 id => uint256) public seenAccrued;
    mapping(bytes32 id => uint256) public seenPrice;

    function people() public view returns (address[7] memory) {
        return [renter, otherRenter, provider, otherProvider, feeTaker, session, STRANGER];
    }

    function count() external view returns (uint256) {
        return ids.length;
    }

    function parts() external view returns (IEscrow, IUsdc) {
        return (escrow, usdc);
    }

    /// @dev Not a step: InvariantsTest calls it when a run is over.
    function freeze() external {
        _mood(true);
    }

    function thaw() external {
        _mood(false);
    }

    function _mood(bool bad) private {
        for (uint256 i = 0; i < 7; ++i) {
            address one = people()[i];
            vm.prank(CIRCLE);
            bad ? usdc.blacklist(one) : usdc.unBlacklist(one);
        }
        if (usdc.paused() == bad) return;
        vm.prank(CIRCLE);
        bad ? usdc.pause() : usdc.unpause();
    }

    // ---- opening ------------------------------------------------------------------------------------------

    function rent(uint256 who, uint256 from, uint96 price, uint32 seconds_, uint16 fee, uint8 key) external {
        IRentalEscrow.Quote memory quote = quoteOf(_provider(from), who % 2 == 0 ? renter : otherRenter);
        quote.pricePerHour = uint96(bound(price, 0, 1e9));
        (quote.feeBps, quote.feeRecipient) = (uint16(fee % 4 == 0 ? 0 : fee % 1501), feeTaker);
        seconds_ = uint32(bound(seconds_, 60, 36_000));
        bytes32 id = create(quote, key, seconds_);
        _note(id, seconds_);
        if (from % 4 < 3) activate(ids.length - 1);
    }

    function rentFromBudget(uint256 who, uint256 from, uint32 seconds_) external {
        IRentalEscrow.Quote memory quote = quoteOf(_provider(from), who % 2 == 0 ? renter : otherRenter);
        seconds_ = uint32(bound(seconds_, 60, 18_000));
        if (escrow.budgetOf(quote.renter).expiry <= block.timestamp) _newBudget(quote.renter, 5e6);
        _note(createBy(session, quote, 1000 + salts, seconds_), seconds_);
        activate(ids.length - 1);
    }

    function budget(uint256 who, uint96 cap) external {
        _newBudget(who % 2 == 0 ? renter : otherRenter, uint96(bound(cap, 0, 1e7)));
    }

    function _newBudget(address owner, uint96 cap) private {
        if (escrow.budgetOf(owner).expiry != 0) {
            vm.prank(owner);
            escrow.closeBudget(owner);
        }
        openBudget(termsOf(owner, cap));
    }

    function closeBudget(uint256 who, uint256 by) external {
        vm.prank(people()[by % 7]);
        escrow.closeBudget(who % 2 == 0 ? renter : otherRenter);
    }

    // ---- running and closing ------------------------------------------------------------------------------

    function activate(uint256 which) public {
        bytes32 id = which < ids.length ? ids[which] : _some(which);
        vm.prank(escrow.rental(id).provider);
        escrow.activate(id, REPORT);
    }

    function extend(uint256 which, uint32 more, bool bySession) external {
        bytes32 id = _some(which);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        uint32 total = r.fundedSeconds + uint32(bound(more, 1, 4000));
        vm.prank(bySession ? session : r.renter);
        escrow.extendTo(id, total, type(uint256).max);
        _note(id, total);
    }

    function cancel(uint256 which, uint256 by) external {
        bytes32 id = _some(which);
        IRentalEscrow.Status before = escrow.statusOf(id);
        address who = people()[by % 7];
        IRentalEscrow.Rental memory r = escrow.rental(id);
        vm.prank(who);
        escrow.cancel(id);
        bool party = who == r.renter || who == r.provider || (who == session && r.budget != 0);
        if (before != IRentalEscrow.Status.NoShow && !party) broken = "I11 cancel";
        if (escrow.rental(id).refunded != r.deposit) broken = "I8";
    }

    function reject(uint256 which, uint256 by) external {
        bytes32 id = _some(which);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        address who = by % 3 == 0 ? people()[by % 7] : r.renter;
        vm.prank(who);
        escrow.reject(id, 1, REPORT);
        if (who != r.renter && !(who == session && r.budget != 0)) broken = "I11 reject";
        if (block.timestamp > uint256(r.startedAt) + r.inspectionSeconds) broken = "I9";
        if (escrow.rental(id).refunded != r.deposit) broken = "I9 refund";
    }

    function end(uint256 which, uint256 by) external {
        bytes32 id = _some(which);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        address who = by % 3 == 0 ? people()[by % 7] : by % 3 == 1 ? r.renter : r.provider;
        vm.prank(who);
        escrow.end(id, REPORT);
        if (who != r.renter && who != r.provider && !(who == session && r.budget != 0)) broken = "I11 end";
    }

    function endSigned(uint256 which) external {
        bytes32 id = _some(which);
        bytes memory signature = signed(escrow.rental(id).renter, escrow.endDigest(id, REPORT));
        escrow.endSigned(id, REPORT, signature);
    }

    function settle(uint256 which) external {
        bytes32 id = _some(which);
        bool over = escrow.statusOf(id) == IRentalEscrow.Status.Expired;
        vm.prank(STRANGER);
        escrow.settle(id);
        if (!over) broken = "I16";
    }

    function closedStaysClosed(uint256 which, uint256 by) external {
        bytes32 id = ids[which % ids.length];
        if (escrow.rental(id).state != IRentalEscrow.State.Closed) return;
        vm.prank(people()[by % 7]);
        try escrow.end(id, REPORT) {
            broken = "I5 end";
        } catch {}
        try escrow.cancel(id) {
            broken = "I5 cancel";
        } catch {}
    }

    function withdraw(uint256 who) external {
        address owner = people()[who % 7];
        uint256 credit = escrow.creditOf(owner);
        uint256 before = usdc.balanceOf(owner);
        vm.prank(STRANGER);
        escrow.withdrawFor(owner);
        if (usdc.balanceOf(owner) != before + credit || escrow.creditOf(owner) != 0) broken = "I5 credit";
    }

    // ---- the world ----------------------------------------------------------------------------------------

    function timePasses(uint256 seconds_) external {
        later(bound(seconds_, 0, 4000));
    }

    function toAnEdge(uint256 which, uint256 edge, uint256 off) external {
        IRentalEscrow.Rental memory r = escrow.rental(_some(which));
        uint256 time = edge % 3 == 0 ? r.startBy : edge % 3 == 1 ? r.endsAt : r.startedAt + r.inspectionSeconds;
        time = time + off % 3 - 1;
        if (time > block.timestamp) vm.warp(time);
    }

    function trouble(uint256 who) external {
        address one = people()[who / 8 % 7];
        (bool paused, bool blacklisted) = (usdc.paused(), usdc.isBlacklisted(one));
        vm.prank(CIRCLE);
        if (paused) {
            usdc.unpause();
        } else if (who % 8 == 0) {
            usdc.pause();
        } else {
            blacklisted ? usdc.unBlacklist(one) : usdc.blacklist(one);
        }
    }

    function donate(uint256 amount) external {
        amount = bound(amount, 1, 1000);
        vm.prank(renter);
        usdc.transfer(address(escrow), amount);
        donated += amount;
    }

    /// @dev I4, I10 while it goes on: looked at after every step of the run.
    function look() external {
        for (uint256 i = 0; i < ids.length; ++i) {
            IRentalEscrow.Rental memory r = escrow.rental(ids[i]);
            uint256 accrued = escrow.accruedOf(ids[i]);
            bool free = r.state == IRentalEscrow.State.Closed && r.paid + r.fee == 0;
            if (accrued < seenAccrued[ids[i]] && !free) broken = "I4";
            if (r.endsAt < seenEnd[ids[i]]) broken = "I10 end";
            if (r.pricePerHour != seenPrice[ids[i]]) broken = "I10 price";
            (seenAccrued[ids[i]], seenEnd[ids[i]]) = (accrued, r.endsAt);
        }
    }

    function _note(bytes32 id, uint32 total) private {
        if (!known[id]) ids.push(id);
        known[id] = true;
        seenPrice[id] = escrow.rental(id).pricePerHour;
        consented[id] = (seenPrice[id] * total + 3599) / 3600;
    }

    /// @dev Mostly one that is open.
    function _some(uint256 which) private view returns (bytes32) {
        address who = which % 2 == 0 ? renter : otherRenter;
        (bytes32[] memory open,) = escrow.openRentals(who, false, 0, 99);
        if (open.length == 0 || which % 7 == 0) return ids[which % ids.length];
        return open[which / 2 % open.length];
    }

    function _provider(uint256 from) private view returns (address) {
        return from % 2 == 0 ? provider : otherProvider;
    }
}

contract InvariantsTest is MiniTest {
    Handler private handler;
    IEscrow private escrow;
    IUsdc private usdc;

    function setUp() external {
        handler = new Handler();
        handler.setUp();
        (escrow, usdc) = handler.parts();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    /// @dev What is no step of a story.
    function excludeSelectors() external view returns (FuzzSelector[] memory excluded) {
        excluded = new FuzzSelector[](1);
        excluded[0].addr = address(handler);
        excluded[0].selectors = new bytes4[](3);
        excluded[0].selectors[0] = World.setUp.selector;
        excluded[0].selectors[1] = Handler.freeze.selector;
        excluded[0].selectors[2] = Handler.thaw.selector;
    }

    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    /// I1, I2, I3, I10, I12, I15 and what the handler saw of the others.
    function invariant_EveryUnitIsSomebodys() external view {
        require(bytes(handler.broken()).length == 0, handler.broken());
        same(usdc.balanceOf(address(escrow)), escrow.held() + escrow.credits() + handler.donated());
        (uint256 held, uint256 open) = (0, 0);
        for (uint256 i = 0; i < handler.count(); ++i) {
            bytes32 id = handler.ids(i);
            IRentalEscrow.Rental memory r = escrow.rental(id);
            same(r.deposit, (uint256(r.pricePerHour) * r.fundedSeconds + 3599) / 3600);
            same(r.deposit, handler.consented(id));
            require(escrow.accruedOf(id) <= r.deposit, "I3");
            if (r.state == IRentalEscrow.State.Closed) {
                same(uint256(r.paid) + r.fee + r.refunded, r.deposit);
            } else {
                held += r.deposit;
                open += 1;
            }
        }
        address[7] memory people = handler.people();
        (uint256 credits, uint256 left) = (0, 0);
        for (uint256 i = 0; i < 7; ++i) {
            credits += escrow.creditOf(people[i]);
            left += escrow.budgetOf(people[i]).left;
        }
        same(escrow.credits(), credits);
        same(escrow.held(), held + left);
        same(_listed(people[0], false) + _listed(people[1], false), open);
        same(_listed(people[2], true) + _listed(people[3], true), open);
    }

    /// I7: from wherever a run came to, a stranger and time close everything, in the worst mood of the token.
    function afterInvariant() external {
        handler.freeze();
        vm.warp(block.timestamp + 2 ** 33);
        for (uint256 i = 0; i < handler.count(); ++i) {
            bytes32 id = handler.ids(i);
            IRentalEscrow.State state = escrow.rental(id).state;
            vm.prank(address(0x5742));
            if (state == IRentalEscrow.State.Funded) escrow.cancel(id);
            if (state == IRentalEscrow.State.Active) escrow.settle(id);
        }
        address[7] memory people = handler.people();
        for (uint256 i = 0; i < 7; ++i) {
            if (escrow.budgetOf(people[i]).expiry != 0) escrow.closeBudget(people[i]);
        }
        same(escrow.held(), 0);
        handler.thaw();
        for (uint256 i = 0; i < 7; ++i) {
            if (escrow.creditOf(people[i]) != 0) escrow.withdrawFor(people[i]);
        }
        same(usdc.balanceOf(address(escrow)), handler.donated());
    }

    /// @dev Every entry is open, its own, and there once.
    function _listed(address account, bool asProvider) private view returns (uint256) {
        (bytes32[] memory ids, uint256 next) = escrow.openRentals(account, asProvider, 0, type(uint256).max);
        same(next, 0);
        for (uint256 i = 0; i < ids.length; ++i) {
            IRentalEscrow.Rental memory r = escrow.rental(ids[i]);
            same(asProvider ? r.provider : r.renter, account);
            require(r.state == IRentalEscrow.State.Funded || r.state == IRentalEscrow.State.Active, "I12");
            for (uint256 j = 0; j < i; ++j) {
                require(ids[i] != ids[j], "I12 twice");
            }
        }
        return ids.length;
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {Rules} from "./Rules.sol";
import {IEscrow, IUsdc} from "./World.sol";

/// @title Everybody does everything at any time
/// @dev Inputs are bent until most steps do something; about one in ten must be refused. Before each call it is said from
/// the rules alone whether it goes through, and the contract must agree; after each step everything is looked at. What
/// was wrong is written in `broken`. A step that was refused as it must be reverts, so that it is counted.
contract Handler is Rules {
    struct Seen {
        uint256 consented;
        uint256 price;
        uint256 endsAt;
        uint256 accrued;
        bool known;
        bytes32 closed;
    }

    uint256 private constant ALL = type(uint256).max;
    bytes32[] private running;
    bytes32[] private closed;
    mapping(bytes32 id => Seen) private seen;
    uint256 public donated;
    uint256 public held;
    string public broken;

    modifier looks() {
        _;
        _look();
    }

    function parts() external view returns (IEscrow, IUsdc) {
        return (escrow, usdc);
    }

    function open() external view returns (bytes32[] memory) {
        return running;
    }

    // ---- opening ------------------------------------------------------------------------------------------

    function rent(uint256 who, uint256 from, uint96 price, uint32 seconds_, uint16 fee) external looks {
        IRentalEscrow.Quote memory quote = quoteOf(_provider(from), _renter(who));
        quote.pricePerHour = uint96(bound(price, 0, 1e9));
        (quote.feeBps, quote.feeRecipient) = (uint16(fee % 4 == 0 ? 0 : fee % 1501), feeTaker);
        if (from % 8 != 0) _wellFor(quote.renter);
        bytes32 id = _create(quote, who % 16 == 0 ? 1 : ++salts, uint32(bound(seconds_, 60, 36_000)));
        if (who % 4 == 0) _mustFail(quote.renter, _creation(quote, ++salts, 60), "I6 quote");
        if (from % 3 != 0) _activate(id, quote.provider);
    }

    function rentFromBudget(uint256 who, uint256 from, uint32 seconds_, uint256 by) external looks {
        IRentalEscrow.Quote memory quote = quoteOf(_provider(from), _renter(who));
        if (!_spendable(quote.renter)) _newBudget(quote.renter, 5e6);
        IRentalEscrow.Budget memory b = escrow.budgetOf(quote.renter);
        uint256 most = uint256(b.left) * 3600 / quote.pricePerHour;
        seconds_ = uint32(bound(seconds_, 60, most < 18_000 ? most + by % 8 / 7 : 18_000));
        address caller = by % 16 == 0 ? people()[by / 16 % 7] : session;
        bytes memory signature = signed(quote.provider, escrow.quoteDigest(quote));
        bytes32 key = bytes32(++salts);
        bytes memory call_ = abi.encodeCall(escrow.createFromBudget, (key, quote, signature, seconds_, ALL, 0, anyone));
        _expect(caller == session && _ahead(quote.pricePerHour, seconds_) <= b.left, caller, call_, "I3 budget");
        bytes32 id = escrow.rentalId(quote.renter, key);
        _note(id, quote.pricePerHour, seconds_);
        _activate(id, quote.provider);
    }

    function budget(uint256 who, uint96 cap) external looks {
        _newBudget(_renter(who), uint96(bound(cap, 0, 1e7)));
    }

    function closeBudget(uint256 who, uint256 by) external looks {
        address owner = _renter(who);
        if (escrow.budgetOf(owner).expiry == 0) owner = _renter(who + 1);
        if (escrow.budgetOf(owner).expiry == 0) _newBudget(owner, 1e6);
        address caller = by % 8 == 0 ? people()[by / 8 % 7] : by % 2 == 0 ? owner : session;
        bool may = caller == owner || caller == session || block.timestamp >= escrow.budgetOf(owner).expiry;
        _expect(may, caller, abi.encodeCall(escrow.closeBudget, (owner)), "I11 closeBudget");
    }

    // ---- running and closing ------------------------------------------------------------------------------

    function activate(uint256 which, uint256 by) external looks {
        bytes32 id = _some(which, by % 16 == 1 ? Wanted.Funded : Wanted.Startable);
        _activate(id, by % 8 == 0 ? people()[by / 8 % 7] : escrow.rental(id).provider);
    }

    function extend(uint256 which, uint32 more, uint256 by) external looks {
        bytes32 id = _some(which, Wanted.Active);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        uint32 total = r.fundedSeconds + uint32(bound(more, by % 16 == 1 ? 0 : 1, 4000));
        if (total > r.maxSeconds && by % 16 != 2) total = r.maxSeconds;
        address caller = by % 16 == 0 ? people()[by / 16 % 7] : _forRenter(r) && by % 2 == 0 ? session : r.renter;
        if (caller == r.renter && by % 8 != 0) _wellFor(caller);
        uint256 extra = _ahead(r.pricePerHour, total) - r.deposit;
        bool pays = caller == r.renter ? _moves(caller) : caller == session && _forRenter(r) && _pays(r.renter, extra);
        bool may = pays && block.timestamp < r.endsAt && total > r.fundedSeconds && total <= r.maxSeconds;
        _expect(may, caller, abi.encodeCall(escrow.extendTo, (id, total, ALL)), "I3 extendTo");
        _note(id, r.pricePerHour, total);
    }

    function cancel(uint256 which, uint256 by) external looks {
        bytes32 id = _some(which, Wanted.Funded);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        address caller = _caller(r, by);
        bool may = r.state == IS_FUNDED && (_isParty(caller, r) || block.timestamp > r.startBy);
        _expect(may, caller, abi.encodeCall(escrow.cancel, (id)), "I11 cancel");
        if (escrow.rental(id).refunded != r.deposit) broken = "I8";
    }

    function reject(uint256 which, uint256 by) external looks {
        bytes32 id = _some(which, by % 8 == 0 ? Wanted.Running : Wanted.Inspected);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        address caller = by % 8 == 1 ? people()[by / 8 % 7] : r.renter;
        bool renters = caller == r.renter || (caller == session && _forRenter(r));
        bool may = renters && block.timestamp <= uint256(r.startedAt) + r.inspectionSeconds;
        _expect(may, caller, abi.encodeCall(escrow.reject, (id, 1, REPORT)), "I9");
        if (escrow.rental(id).refunded != r.deposit) broken = "I9 refund";
    }

    function end(uint256 which, uint256 by) external looks {
        bytes32 id = _some(which, Wanted.Running);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        address caller = _caller(r, by);
        _expect(_isParty(caller, r), caller, abi.encodeCall(escrow.end, (id, REPORT)), "I11 end");
    }

    function endSigned(uint256 which, uint256 by) external looks {
        bytes32 id = _some(which, Wanted.Running);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        address signer = by % 8 == 0 ? people()[by / 8 % 6] : _forRenter(r) && by % 2 == 0 ? session : r.renter;
        bool may = signer == r.renter || (signer == session && _forRenter(r));
        bytes memory signature = signed(signer, escrow.endDigest(id, REPORT));
        _expect(may, STRANGER, abi.encodeCall(escrow.endSigned, (id, REPORT, signature)), "I11 endSigned");
    }

    function settle(uint256 which, uint256 by) external looks {
        bytes32 id = _some(which, by % 8 == 0 ? Wanted.Running : Wanted.Expired);
        bool over = block.timestamp >= escrow.rental(id).endsAt;
        _expect(over, people()[by / 8 % 7], abi.encodeCall(escrow.settle, (id)), "I16");
    }

    function closedStaysClosed(uint256 which, uint256 by) external looks {
        bytes32 id = _some(which, Wanted.Closed);
        address caller = people()[by % 7];
        _mustFail(caller, abi.encodeCall(escrow.end, (id, REPORT)), "I5 end");
        _mustFail(caller, abi.encodeCall(escrow.cancel, (id)), "I5 cancel");
        _mustFail(caller, abi.encodeCall(escrow.settle, (id)), "I5 settle");
        _mustFail(caller, abi.encodeCall(escrow.reject, (id, 1, REPORT)), "I5 reject");
        _mustFail(caller, abi.encodeCall(escrow.activate, (id, REPORT)), "I5 activate");
        _mustFail(caller, abi.encodeCall(escrow.extendTo, (id, 36_000, ALL)), "I5 extendTo");
    }

    function withdraw(uint256 who) external looks {
        address owner = people()[who % 7];
        for (uint256 i = 1; i < 7 && escrow.creditOf(owner) == 0; ++i) {
            owner = people()[(who + i) % 7];
        }
        if (escrow.creditOf(owner) == 0 && who % 16 != 1) owner = _earner(who);
        if (who % 8 != 0) _wellFor(owner);
        (uint256 credit, uint256 before) = (escrow.creditOf(owner), usdc.balanceOf(owner));
        bool may = credit != 0 && _moves(owner);
        _expect(may, STRANGER, abi.encodeCall(escrow.withdrawFor, (owner)), "I5 withdraw");
        if (usdc.balanceOf(owner) != before + credit || escrow.creditOf(owner) != 0) broken = "I5 credit";
    }

    // ---- the world ----------------------------------------------------------------------------------------

    function timePasses(uint256 seconds_) external looks {
        later(bound(seconds_, 0, 2000));
    }

    function toAnEdge(uint256 which, uint256 edge, uint256 off) external looks {
        IRentalEscrow.Rental memory r = escrow.rental(_some(which, edge % 3 == 0 ? Wanted.Funded : Wanted.Running));
        uint256 time = edge % 3 == 0 ? r.startBy : edge % 3 == 1 ? r.endsAt : r.startedAt + r.inspectionSeconds;
        time = time + off % 3 - 1;
        if (time > block.timestamp) vm.warp(time);
    }

    function trouble(uint256 who) external looks {
        vm.prank(CIRCLE);
        if (who % 4 == 0) usdc.pause();
        else usdc.blacklist(people()[who / 4 % 7]);
    }

    function donate(uint256 amount) external looks {
        amount = bound(amount, 1, 1000);
        _wellFor(renter);
        vm.prank(renter);
        usdc.transfer(address(escrow), amount);
        donated += amount;
    }

    /// @dev Not steps: the invariants' last act.
    function freeze() external {
        vm.prank(CIRCLE);
        usdc.pause();
        for (uint256 i = 0; i < 7; ++i) {
            vm.prank(CIRCLE);
            usdc.blacklist(people()[i]);
        }
    }

    function thaw() external {
        for (uint256 i = 0; i < 7; ++i) {
            _wellFor(people()[i]);
        }
    }

    // ---- what must hold -----------------------------------------------------------------------------------

    /// @dev I5: what is closed is as it was. Once, when a run is over.
    function lookBack() external view {
        IRentalEscrow.Rental[] memory found = escrow.rentals(closed);
        for (uint256 i = 0; i < found.length; ++i) {
            same(keccak256(abi.encode(found[i])), seen[closed[i]].closed);
        }
    }

    /// @dev I2 to I4, I10 of every rental that is open or was before this step, and their sum for the invariants.
    function _look() private {
        held = 0;
        IRentalEscrow.Rental[] memory found = escrow.rentals(running);
        for (uint256 i = found.length; i > 0; --i) {
            bytes32 id = running[i - 1];
            IRentalEscrow.Rental memory r = found[i - 1];
            _lookAt(r, seen[id], escrow.accruedOf(id));
            if (r.state == IS_CLOSED) {
                seen[id].closed = keccak256(abi.encode(r));
                closed.push(id);
                running[i - 1] = running[running.length - 1];
                running.pop();
            } else {
                held += r.deposit;
            }
        }
    }

    function _lookAt(IRentalEscrow.Rental memory r, Seen storage s, uint256 accrued) private {
        if (r.deposit != s.consented || r.deposit != _ahead(r.pricePerHour, r.fundedSeconds)) broken = "I10";
        if (r.endsAt < s.endsAt || r.pricePerHour != s.price) broken = "I10 terms";
        if (accrued > r.deposit) broken = "I3";
        if (r.state == IS_CLOSED) {
            if (uint256(r.paid) + r.fee + r.refunded != r.deposit || r.paid + r.fee != accrued) broken = "I2";
            if (accrued < s.accrued && accrued != 0) broken = "I4 closed";
        } else {
            if (accrued < s.accrued) broken = "I4";
            if (r.endsAt != s.endsAt || accrued != s.accrued) (s.endsAt, s.accrued) = (r.endsAt, accrued);
        }
    }

    function _expect(bool may, address caller, bytes memory call_, string memory rule_) private {
        vm.prank(caller);
        (bool done,) = address(escrow).call(call_);
        if (done != may) broken = rule_;
        else require(done, "refused, as it must be");
    }

    function _mustFail(address caller, bytes memory call_, string memory rule_) private {
        vm.prank(caller);
        (bool done,) = address(escrow).call(call_);
        if (done) broken = rule_;
    }

    // ---- tools --------------------------------------------------------------------------------------------

    function _creation(IRentalEscrow.Quote memory quote, uint256 key, uint32 seconds_)
        private
        view
        returns (bytes memory)
    {
        bytes memory signature = signed(quote.provider, escrow.quoteDigest(quote));
        return abi.encodeCall(escrow.create, (bytes32(key), quote, signature, seconds_, ALL, 0));
    }

    function _create(IRentalEscrow.Quote memory quote, uint256 key, uint32 seconds_) private returns (bytes32 id) {
        id = escrow.rentalId(quote.renter, bytes32(key));
        bool may = _moves(quote.renter) && escrow.rental(id).state == IRentalEscrow.State.None;
        _expect(may, quote.renter, _creation(quote, key, seconds_), "I6 key");
        _note(id, quote.pricePerHour, seconds_);
    }

    function _activate(bytes32 id, address caller) private {
        IRentalEscrow.Rental memory r = escrow.rental(id);
        bool may = r.state == IS_FUNDED && caller == r.provider && block.timestamp <= r.startBy;
        _expect(may, caller, abi.encodeCall(escrow.activate, (id, REPORT)), "I11 activate");
    }

    function _newBudget(address owner, uint96 cap) private {
        if (escrow.budgetOf(owner).expiry != 0) {
            vm.prank(owner);
            escrow.closeBudget(owner);
        }
        _wellFor(owner);
        openBudget(termsOf(owner, cap));
    }

    function _note(bytes32 id, uint256 price, uint32 total) private {
        if (!seen[id].known) running.push(id);
        (seen[id].known, seen[id].price, seen[id].consented) = (true, price, _ahead(price, total));
    }

    function _wellFor(address who) private {
        if (usdc.paused()) {
            vm.prank(CIRCLE);
            usdc.unpause();
        }
        if (usdc.isBlacklisted(who)) {
            vm.prank(CIRCLE);
            usdc.unBlacklist(who);
        }
    }

    /// @dev One that fits, made if there is none.
    function _some(uint256 which, Wanted wanted) private returns (bytes32) {
        if (wanted == Wanted.Closed && closed.length != 0) return closed[which % closed.length];
        for (uint256 i = 0; i < running.length; ++i) {
            bytes32 id = running[(which % running.length + i) % running.length];
            if (_fits(escrow.rental(id), wanted)) return id;
        }
        IRentalEscrow.Quote memory quote = quoteOf(_provider(which), _renter(which / 2));
        _wellFor(quote.renter);
        bytes32 made = _create(quote, ++salts, 3600);
        if (wanted <= Wanted.Startable) return made;
        _activate(made, quote.provider);
        if (wanted == Wanted.Expired) later(3600);
        if (wanted == Wanted.Closed) _expect(true, quote.renter, abi.encodeCall(escrow.end, (made, 0)), "I7");
        return made;
    }

    /// @dev Somebody who has just earned something.
    function _earner(uint256 which) private returns (address) {
        bytes32 id = _some(which, Wanted.Running);
        IRentalEscrow.Rental memory r = escrow.rental(id);
        later(1000);
        _expect(true, r.renter, abi.encodeCall(escrow.end, (id, REPORT)), "I7");
        return r.provider;
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {World} from "./World.sol";

contract ClosingTest is World {
    function end(bytes32 id, address by) private {
        vm.prank(by);
        escrow.end(id, REPORT);
    }

    function closed(bytes32 id, IRentalEscrow.Outcome outcome, uint256 paid) private view {
        IRentalEscrow.Rental memory r = escrow.rental(id);
        same(uint256(r.state), uint256(IRentalEscrow.State.Closed));
        same(uint256(r.outcome), uint256(outcome));
        same(r.paid, paid);
        same(uint256(r.paid) + r.fee + r.refunded, r.deposit);
        same(escrow.held(), 0);
    }

    function test_GivesAllBackToWhoCancels() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 3600);
        vm.prank(provider);
        escrow.cancel(id);
        closed(id, IRentalEscrow.Outcome.Cancelled, 0);
        same(usdc.balanceOf(renter), PURSE);
    }

    function test_RefusesAStrangerBeforeTheStartIsLate() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 3600);
        later(600);
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, STRANGER));
        escrow.cancel(id);
    }

    function test_LetsAStrangerCloseANoShow() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 3600);
        later(601);
        vm.prank(STRANGER);
        escrow.cancel(id);
        closed(id, IRentalEscrow.Outcome.NoShow, 0);
        same(usdc.balanceOf(renter), PURSE);
    }

    function test_GivesAllBackInTheLastSecond() external {
        bytes32 id = active(1);
        later(900);
        vm.prank(renter);
        escrow.reject(id, 3, REPORT);
        closed(id, IRentalEscrow.Outcome.Rejected, 0);
        same(usdc.balanceOf(renter), PURSE);
        same(escrow.rental(id).reportDigest, REPORT);
    }

    function test_RefusesToRejectAfterIt() external {
        bytes32 id = active(1);
        later(901);
        vm.prank(renter);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.TooLate.selector, START + 900, START + 901));
        escrow.reject(id, 3, REPORT);
    }

    function test_RefusesARejectionByTheProvider() external {
        bytes32 id = active(1);
        vm.prank(provider);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, provider));
        escrow.reject(id, 3, REPORT);
    }

    function test_PaysToTheSecond() external {
        bytes32 id = active(1);
        later(1000);
        end(id, renter);
        uint256 owed = uint256(400_000) * 1000 / 3600;
        closed(id, IRentalEscrow.Outcome.Ended, owed);
        same(escrow.creditOf(provider), owed);
        same(usdc.balanceOf(renter), PURSE - owed);
    }

    function test_PaysNothingToAProviderThatLeavesEarly() external {
        bytes32 id = active(1);
        later(900);
        end(id, provider);
        closed(id, IRentalEscrow.Outcome.Abandoned, 0);
        same(escrow.rental(id).reportDigest, 0);
    }

    function test_RefusesAnEndByAStranger() external {
        bytes32 id = active(1);
        later(5000);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, STRANGER));
        end(id, STRANGER);
    }

    function test_EndsForWhoeverSendsIt() external {
        bytes32 id = active(1);
        later(1000);
        bytes memory signature = signed(renter, escrow.endDigest(id, REPORT));
        vm.prank(STRANGER);
        escrow.endSigned(id, REPORT, signature);
        closed(id, IRentalEscrow.Outcome.Ended, uint256(400_000) * 1000 / 3600);
    }

    function test_RefusesAnothersSignature() external {
        bytes32 id = active(1);
        bytes memory signature = signed(provider, escrow.endDigest(id, REPORT));
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.BadSignature.selector, renter));
        escrow.endSigned(id, REPORT, signature);
    }

    function test_LetsAnyoneSettle() external {
        bytes32 id = active(1);
        later(3600);
        vm.prank(STRANGER);
        escrow.settle(id);
        closed(id, IRentalEscrow.Outcome.Expired, 400_000);
    }

    function test_RefusesToSettleBefore() external {
        bytes32 id = active(1);
        later(3599);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.TooEarly.selector, START + 3600, START + 3599));
        escrow.settle(id);
    }

    function test_StaysClosed() external {
        bytes32 id = active(1);
        later(1000);
        end(id, renter);
        bytes memory why = abi.encodeWithSelector(IRentalEscrow.WrongState.selector, id, IRentalEscrow.State.Closed);
        vm.expectRevert(why);
        end(id, renter);
        vm.expectRevert(why);
        escrow.settle(id);
        vm.expectRevert(why);
        escrow.cancel(id);
    }

    function test_BooksItAsACredit() external {
        bytes32 id = active(1);
        vm.prank(CIRCLE);
        usdc.blacklist(renter);
        end(id, renter);
        same(escrow.creditOf(renter), 400_000);
        same(escrow.credits(), 400_000);
        vm.prank(CIRCLE);
        usdc.unBlacklist(renter);
        escrow.withdrawFor(renter);
        same(usdc.balanceOf(renter), PURSE);
    }

    function test_PaysItOnceToItsOwner() external {
        bytes32 id = active(1);
        later(3600);
        escrow.settle(id);
        vm.prank(STRANGER);
        escrow.withdrawFor(provider);
        same(usdc.balanceOf(provider), 400_000);
        vm.prank(provider);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NothingToWithdraw.selector, provider));
        escrow.withdraw();
    }

    function test_TakesTheFeeFromTheProvider() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        (quote.feeBps, quote.feeRecipient) = (250, feeTaker);
        bytes32 id = create(quote, 1, 3600);
        vm.prank(provider);
        escrow.activate(id, 0);
        later(1000);
        end(id, renter);
        uint256 owed = uint256(400_000) * 1000 / 3600;
        same(escrow.creditOf(feeTaker), owed * 250 / 10_000);
        same(escrow.creditOf(provider), owed - owed * 250 / 10_000);
    }
}

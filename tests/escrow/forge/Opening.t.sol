// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {World} from "./World.sol";

contract OpeningTest is World {
    function refuse(IRentalEscrow.Quote memory quote, uint32 seconds_, uint256 most, bytes memory why) private {
        bytes memory signature = signed(quote.provider, escrow.quoteDigest(quote));
        vm.prank(quote.renter);
        vm.expectRevert(why);
        escrow.create(bytes32(uint256(9)), quote, signature, seconds_, most, 0);
    }

    function test_RefusesAnotherCaller() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        vm.prank(otherRenter);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, otherRenter));
        escrow.create(0, quote, "", 60, PURSE, 0);
    }

    function test_RefusesAUsedKey() external {
        bytes32 id = create(quoteOf(provider, renter), 9, 60);
        refuse(quoteOf(provider, renter), 60, PURSE, abi.encodeWithSelector(IRentalEscrow.RentalExists.selector, id));
        vm.prank(renter);
        escrow.cancel(id);
        refuse(quoteOf(provider, renter), 60, PURSE, abi.encodeWithSelector(IRentalEscrow.RentalExists.selector, id));
    }

    function test_TakesTheLastSecond() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        later(600);
        create(quote, 1, 60);
    }

    function test_RefusesTheSecondAfter() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        later(601);
        uint256 now_ = START + 601;
        refuse(quote, 60, PURSE, abi.encodeWithSelector(IRentalEscrow.TooLate.selector, START + 600, now_));
    }

    function test_RefusesTheFee() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        (quote.feeBps, quote.feeRecipient) = (1501, feeTaker);
        refuse(quote, 60, PURSE, abi.encodeWithSelector(IRentalEscrow.BadFee.selector, 1501, feeTaker));
        quote.feeBps = 1500;
        create(quote, 1, 60);
    }

    function test_RefusesAFeeForNobody() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        quote.feeBps = 1;
        refuse(quote, 60, PURSE, abi.encodeWithSelector(IRentalEscrow.BadFee.selector, 1, address(0)));
    }

    function test_RefusesAUsedSalt() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        create(quote, 1, 60);
        refuse(quote, 60, PURSE, abi.encodeWithSelector(IRentalEscrow.QuoteSpent.selector, escrow.quoteDigest(quote)));
        quote = quoteOf(provider, renter);
        vm.prank(provider);
        escrow.cancelQuote(quote);
        refuse(quote, 60, PURSE, abi.encodeWithSelector(IRentalEscrow.QuoteSpent.selector, escrow.quoteDigest(quote)));
    }

    function test_RefusesAForgedQuote() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        bytes memory signature = signed(otherProvider, escrow.quoteDigest(quote));
        vm.prank(renter);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.BadSignature.selector, provider));
        escrow.create(0, quote, signature, 60, PURSE, 0);
    }

    function test_RefusesTooShortATime() external {
        bytes memory why = abi.encodeWithSelector(IRentalEscrow.BadSeconds.selector, 59, 60, 36_000);
        refuse(quoteOf(provider, renter), 59, PURSE, why);
    }

    function test_RefusesTooLongATime() external {
        bytes memory why = abi.encodeWithSelector(IRentalEscrow.BadSeconds.selector, 36_001, 60, 36_000);
        refuse(quoteOf(provider, renter), 36_001, PURSE, why);
    }

    function test_RefusesNoTimeAtAll() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        quote.minSeconds = 0;
        refuse(quote, 0, PURSE, abi.encodeWithSelector(IRentalEscrow.BadSeconds.selector, 0, 1, 36_000));
    }

    function test_RefusesAHigherPrice() external {
        bytes memory why = abi.encodeWithSelector(IRentalEscrow.AboveMaximum.selector, 400_000, 399_999);
        refuse(quoteOf(provider, renter), 3600, 399_999, why);
    }

    function test_OpensNothingWithoutMoney() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, session);
        refuse(quote, 60, PURSE, abi.encodeWithSignature("Error(string)", "ERC20: transfer amount exceeds allowance"));
        same(escrow.held(), 0);
    }

    function test_HoldsTheDeposit() external {
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        quote.pricePerHour = 123_457;
        bytes32 id = create(quote, 1, 601);
        uint256 deposit = (uint256(123_457) * 601 + 3599) / 3600;
        same(escrow.rental(id).deposit, deposit);
        same(escrow.held(), deposit);
        same(usdc.balanceOf(address(escrow)), deposit);
        same(usdc.balanceOf(renter), PURSE - deposit);
        same(id, escrow.rentalId(renter, bytes32(uint256(1))));
    }

    function test_IsOnBothLists() external {
        bytes32 id = create(quoteOf(provider, renter), 1, 60);
        (bytes32[] memory mine,) = escrow.openRentals(renter, false, 0, 9);
        (bytes32[] memory theirs,) = escrow.openRentals(provider, true, 0, 9);
        same(mine.length, 1);
        same(theirs.length, 1);
        same(mine[0], id);
        same(theirs[0], id);
    }
}

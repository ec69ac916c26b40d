// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "../src/IRentalEscrow.sol";
import {World} from "./World.sol";

contract BudgetsTest is World {
    uint96 private constant CAP = 2_000_000;

    function refuse(address who, IRentalEscrow.Quote memory quote, bytes memory why) private {
        bytes memory signature = signed(quote.provider, escrow.quoteDigest(quote));
        vm.prank(who);
        vm.expectRevert(why);
        escrow.createFromBudget(bytes32(uint256(9)), quote, signature, 3600, PURSE, 0, anyone);
    }

    function test_OpensForWhoeverSendsIt() external {
        openBudget(termsOf(renter, CAP));
        same(escrow.budgetOf(renter).left, CAP);
        same(escrow.held(), CAP);
        same(usdc.balanceOf(renter), PURSE - CAP);
    }

    function test_RefusesOtherTerms() external {
        IRentalEscrow.BudgetTerms memory terms = termsOf(renter, CAP);
        bytes memory signature = signed(renter, authorization(terms));
        terms.session = STRANGER;
        vm.expectRevert(abi.encodeWithSignature("Error(string)", "FiatTokenV2: invalid signature"));
        escrow.openBudget(terms, signature);
    }

    function test_RefusesASecondOne() external {
        openBudget(termsOf(renter, CAP));
        IRentalEscrow.BudgetTerms memory terms = termsOf(renter, CAP);
        bytes memory signature = signed(renter, authorization(terms));
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.BudgetIsOpen.selector, renter));
        escrow.openBudget(terms, signature);
    }

    function test_PaysFromTheBudget() external {
        openBudget(termsOf(renter, CAP));
        bytes32 id = createBy(session, quoteOf(provider, renter), 1, 3600);
        vm.prank(provider);
        escrow.activate(id, 0);
        vm.prank(session);
        escrow.extendTo(id, 7200, PURSE);
        same(escrow.budgetOf(renter).left, CAP - 800_000);
        same(escrow.held(), CAP);
        same(escrow.rental(id).renter, renter);
    }

    function test_RefusesAStranger() external {
        openBudget(termsOf(renter, CAP));
        bytes memory why = abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, STRANGER);
        refuse(STRANGER, quoteOf(provider, renter), why);
    }

    function test_RefusesADearerPrice() external {
        openBudget(termsOf(renter, CAP));
        IRentalEscrow.Quote memory quote = quoteOf(provider, renter);
        quote.pricePerHour = 500_001;
        refuse(session, quote, abi.encodeWithSelector(IRentalEscrow.AboveMaximum.selector, 500_001, 500_000));
    }

    function test_RefusesMoreThanIsLeft() external {
        openBudget(termsOf(renter, 399_999));
        bytes memory why = abi.encodeWithSelector(IRentalEscrow.AboveMaximum.selector, 400_000, 399_999);
        refuse(session, quoteOf(provider, renter), why);
    }

    function test_RefusesToSpendAfterItsEnd() external {
        openBudget(termsOf(renter, CAP));
        uint256 end = START + 1 days;
        vm.warp(end);
        bytes memory why = abi.encodeWithSelector(IRentalEscrow.TooLate.selector, end, end);
        refuse(session, quoteOf(provider, renter), why);
    }

    function test_RefusesAProviderThatIsNotOnIt() external {
        anyone.push(otherProvider);
        IRentalEscrow.BudgetTerms memory terms = termsOf(renter, CAP);
        terms.providersHash = keccak256(abi.encode(anyone));
        openBudget(terms);
        refuse(session, quoteOf(provider, renter), abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, provider));
        createBy(session, quoteOf(otherProvider, renter), 1, 3600);
        anyone.push(provider);
        refuse(session, quoteOf(provider, renter), abi.encodeWithSelector(IRentalEscrow.BadProviders.selector));
    }

    function test_SendsTheRefundToTheOwner() external {
        openBudget(termsOf(renter, CAP));
        bytes32 id = createBy(session, quoteOf(provider, renter), 1, 3600);
        vm.prank(session);
        escrow.cancel(id);
        same(usdc.balanceOf(renter), PURSE - CAP + 400_000);
        same(usdc.balanceOf(session), 0);
        same(uint256(escrow.rental(id).closedBy), uint256(IRentalEscrow.Party.Renter));
    }

    function test_SendsTheRestHome() external {
        openBudget(termsOf(renter, CAP));
        vm.prank(session);
        escrow.closeBudget(renter);
        same(usdc.balanceOf(renter), PURSE);
        same(escrow.held(), 0);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NoBudget.selector, renter));
        escrow.closeBudget(renter);
    }

    function test_RefusesAStrangerBeforeItsEnd() external {
        openBudget(termsOf(renter, CAP));
        later(1 days - 1);
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IRentalEscrow.NotAllowed.selector, STRANGER));
        escrow.closeBudget(renter);
    }

    function test_LetsAnyoneCloseItAfter() external {
        openBudget(termsOf(renter, CAP));
        later(1 days);
        vm.prank(STRANGER);
        escrow.closeBudget(renter);
        same(usdc.balanceOf(renter), PURSE);
    }
}
